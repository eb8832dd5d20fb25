"""The desks of tau2 (airline and retail): what look-ups say before each action, and what an action changes.

The data is that of the package `inspect-evals`; nothing of it is part of this project.

A fact is what the databases say, never what a rule makes of it.
"""

from __future__ import annotations

import copy
import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Self

HERE = Path(__file__).parent
DOMAINS = ("airline", "retail")
NOW = datetime.fromisoformat("2024-05-15T15:00:00")
"""The time of the desk, by its policy."""
COVERED = "health"
"""The reason of a cancellation. The data does not have it; a user who is insured gives one that is covered."""
Json = dict[str, Any]


class Action(NamedTuple):
    """A call of a tool, of the user that the conversation is with."""

    name: str
    arguments: Json
    user: str
    about: str = ""
    """The reservation that the conversation is about."""
    reason: str = ""
    """Why the user cancels."""


class Desk:
    """The database of a domain during one conversation."""

    def __init__(self, data: Json) -> None:
        self.data = data

    def copy_for(self, actions: Iterable[Action]) -> Self:
        """A desk whose entities that these actions name may be changed."""
        desk = type(self)({kind: dict(each) for kind, each in self.data.items()})
        for action in actions:
            for key, kind in (("order_id", "orders"), ("reservation_id", "reservations")):
                id = action.arguments.get(key)
                if id in desk.data.get(kind, {}):
                    desk.data[kind][id] = copy.deepcopy(desk.data[kind][id])
        return desk

    def copy_entity(self, kind: str, id: str) -> Self:
        """A desk on which one entity may be changed."""
        entity = copy.deepcopy(self.data[kind][id])
        return type(self)({**self.data, kind: {**self.data[kind], id: entity}})

    def product_of(self, item: str) -> str:
        """The product of an item; empty for none."""
        return ""

    def facts(self, action: Action) -> Json:
        """What look-ups give about the entities of an action, by slot."""
        raise NotImplementedError

    def apply(self, action: Action) -> None:
        """Change the database as the action does."""
        raise NotImplementedError

    def user_of(self, name: str, arguments: Json) -> str:
        """The user that an action is about; empty if it names none."""
        raise NotImplementedError

    def method(self, user: str, payment: str) -> Json:
        """A way of paying, as the profile of a user has it."""
        found = self.data["users"].get(user, {}).get("payment_methods", {}).get(payment)
        if found is None:
            return {"owned": False}
        balance = found.get("balance", found.get("amount", 10**6))
        return {"owned": True, "kind": found["source"], "balance": balance}


class Airline(Desk):
    """Reservations, flights and users."""

    def user_of(self, name: str, arguments: Json) -> str:
        booked = self.data["reservations"].get(arguments.get("reservation_id"), {})
        return str(arguments.get("user_id") or booked.get("user_id") or "")

    def facts(self, action: Action) -> Json:
        arguments = action.arguments
        user = self.data["users"].get(action.user, {})
        found: Json = {"customer": {"id": action.user, "membership": user.get("membership")}}
        booked = arguments.get("reservation_id") or action.about
        if booked in self.data["reservations"]:
            found["reservation"] = self._reservation(self.data["reservations"][booked])
        if action.name == "send_certificate":
            found["complaint"] = self._find_complaint(action, user.get("reservations", ()))
        if "flights" in arguments:
            found["plan"] = self._plan(arguments)
        if "payment_id" in arguments:
            found["method"] = self.method(action.user, arguments["payment_id"])
        if "payment_methods" in arguments:
            found["payment"] = self._payment(action)
        return found

    def _find_complaint(self, action: Action, known: Iterable[str]) -> Json:
        """The reservation with a late or cancelled flight: that of the conversation, or else the user's first one."""
        own = [id for id in (action.about, *known) if id in self.data["reservations"]]
        read = [self._reservation(self.data["reservations"][id]) for id in own]
        return next((each for each in read if each["delayed"] or each["cancelled"]), {})

    def _reservation(self, booked: Json) -> Json:
        states = [self._state(each) for each in booked["flights"]]
        age = NOW - datetime.fromisoformat(booked["created_at"])
        return {
            "owner": booked["user_id"], "cabin": booked["cabin"], "trip": booked["flight_type"],
            "passengers": len(booked["passengers"]), "bags": booked["total_baggages"],
            "insured": booked["insurance"] == "yes", "age_hours": age.total_seconds() / 3600,
            "flown": any(state in ("landed", "flying") for state in states),
            "cancelled": "cancelled" in states, "delayed": "delayed" in states,
            "changed": bool(booked.get("changed")),
        }  # fmt: skip

    def _state(self, flight: Json) -> str:
        dates = self.data["flights"][flight["flight_number"]]["dates"]
        return str(dates.get(flight["date"], {}).get("status", ""))

    def _plan(self, arguments: Json) -> Json:
        booked = self.data["reservations"].get(arguments.get("reservation_id"))
        known = {
            (each["flight_number"], each["date"]) for each in (booked or {}).get("flights", ())
        }
        new = [(each["flight_number"], each["date"]) for each in arguments["flights"]]
        legs = [self.data["flights"].get(number, {}) for number, _ in new]
        cabin = arguments["cabin"]
        seats, price = [], 0
        for number, date in new:
            day = self.data["flights"].get(number, {}).get("dates", {}).get(date, {})
            price += day.get("prices", {}).get(cabin, 0)
            if (number, date) not in known:
                free = day.get("available_seats", {}).get(cabin, 0)
                seats.append(free if day.get("status") == "available" else 0)
        asked = booked or arguments
        return {
            "starts": _city(legs[0].get("origin", "")), "ends": _city(legs[-1].get("destination", "")),
            "visits": [_city(leg.get("destination", "")) for leg in legs], "trip": asked["flight_type"],
            "origin": _city(asked["origin"]), "destination": _city(asked["destination"]),
            "changes_flights": set(new) != known, "seats": min(seats, default=99), "price": price,
        }  # fmt: skip

    def _payment(self, action: Action) -> Json:
        paid = action.arguments["payment_methods"]
        methods = [self.method(action.user, each["payment_id"]) for each in paid]
        kinds = [each.get("kind") for each in methods]
        enough = [
            each.get("balance", 0) >= part["amount"]
            for each, part in zip(methods, paid, strict=True)
        ]
        return {
            "owned": all(each["owned"] for each in methods), "certificates": kinds.count("certificate"),
            "credit_cards": kinds.count("credit_card"), "gift_cards": kinds.count("gift_card"),
            "covered": all(enough), "total": sum(each["amount"] for each in paid),
        }  # fmt: skip

    def apply(self, action: Action) -> None:
        arguments = action.arguments
        booked = self.data["reservations"].get(arguments.get("reservation_id"))
        if booked is None:
            return
        if action.name == "update_reservation_flights":
            booked["cabin"] = arguments["cabin"]
            booked["flights"] = copy.deepcopy(arguments["flights"])
        elif action.name == "update_reservation_baggages":
            booked["total_baggages"] = arguments["total_baggages"]
        elif action.name == "update_reservation_passengers":
            booked["passengers"] = copy.deepcopy(arguments["passengers"])
        elif action.name == "cancel_reservation":
            booked["changed"] = True


def _city(airport: str) -> str:
    """Two airports of New York are one city, as the desk's own list of airports has it."""
    return "New York" if airport in ("JFK", "LGA") else airport


class Retail(Desk):
    """Orders, products and users."""

    def user_of(self, name: str, arguments: Json) -> str:
        if name == "find_user_id_by_email":
            return self._find_user(lambda user: user["email"] == arguments["email"])
        if name == "find_user_id_by_name_zip":
            words = (
                arguments["first_name"].lower(),
                arguments["last_name"].lower(),
                arguments["zip"],
            )
            return self._find_user(
                lambda user: (
                    user["name"]["first_name"].lower(), user["name"]["last_name"].lower(), user["address"]["zip"],
                ) == words
            )  # fmt: skip
        order = self.data["orders"].get(arguments.get("order_id"), {})
        return str(arguments.get("user_id") or order.get("user_id") or "")

    def _find_user(self, is_meant: Callable[[Json], bool]) -> str:
        return next((id for id, user in self.data["users"].items() if is_meant(user)), "")

    def facts(self, action: Action) -> Json:
        arguments = action.arguments
        found: Json = {"customer": {"id": action.user}}
        order = self.data["orders"].get(arguments.get("order_id"))
        if order is not None:
            paid = [
                each for each in order["payment_history"] if each["transaction_type"] == "payment"
            ]
            found["order"] = {
                "owner": order["user_id"], "status": order["status"],
                "items": [each["item_id"] for each in order["items"]],
                "paid_with": paid[0]["payment_method_id"], "total": paid[0]["amount"],
            }  # fmt: skip
        if "payment_method_id" in arguments:
            found["method"] = self.method(action.user, arguments["payment_method_id"])
        if "item_ids" in arguments:
            items = (order or {"items": []})["items"]
            left = Counter(arguments["item_ids"])
            left.subtract(each["item_id"] for each in items)
            paired = len(arguments.get("new_item_ids", arguments["item_ids"])) == len(
                arguments["item_ids"]
            )
            found["selection"] = {"in_order": paired and max(left.values()) <= 0}
        if "new_item_ids" in arguments:
            found["change"] = self._change(order or {"items": []}, arguments)
        if "user_id" in arguments:
            found["profile"] = {"id": arguments["user_id"]}
        return found

    def _change(self, order: Json, arguments: Json) -> Json:
        items = {each["item_id"]: each for each in order["items"]}
        pairs = list(zip(arguments["item_ids"], arguments["new_item_ids"], strict=False))
        new = [self._variant(id) for _, id in pairs]
        old = [items.get(id, {}) for id, _ in pairs]
        return {
            "products": " ".join(each.get("product_id", "") for each in old),
            "new_products": " ".join(product for product, _ in new),
            "available": all(variant.get("available") for _, variant in new),
            "difference": _sum_prices(variant for _, variant in new) - _sum_prices(old),
        }  # fmt: skip

    def product_of(self, item: str) -> str:
        return self._variant(item)[0]

    def _variant(self, item: str) -> tuple[str, Json]:
        for id, product in self.data["products"].items():
            if item in product["variants"]:
                return id, product["variants"][item]
        return "", {}

    def apply(self, action: Action) -> None:
        order = self.data["orders"].get(action.arguments.get("order_id"))
        states = {
            "cancel_pending_order": "cancelled",
            "modify_pending_order_items": "pending (item modified)",
            "return_delivered_order_items": "return requested",
            "exchange_delivered_order_items": "exchange requested",
        }
        if order is not None and action.name in states:
            order["status"] = states[action.name]


def _sum_prices(items: Iterable[Json]) -> float:
    return sum(each.get("price", 0) for each in items)


DESKS: dict[str, type[Desk]] = {"airline": Airline, "retail": Retail}


def read_desk(data: Path, domain: str) -> Desk:
    """The database of a domain."""
    with gzip.open(data / domain / "db.json.gz", "rt", encoding="utf-8") as file:
        return DESKS[domain](json.load(file))


def read_tasks(data: Path, domain: str, desk: Desk) -> Iterator[list[Action]]:
    """The actions of each task that its authors hold to be right, in order."""
    for task in json.loads((data / domain / "tasks.json").read_text(encoding="utf-8")):
        raw = (task["evaluation_criteria"] or {}).get("actions") or []
        named = [desk.user_of(each["name"], each["arguments"]) for each in raw]
        user = next(filter(None, named), "")
        about, actions = "", []
        for each in raw:
            about = each["arguments"].get("reservation_id", about)
            actions.append(Action(each["name"], each["arguments"], user, about, COVERED))
        yield actions
