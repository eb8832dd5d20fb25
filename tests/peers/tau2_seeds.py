"""Actions that break one rule of a desk of tau2 each, made of actions that its authors hold to be right."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tau2_desk import Action, Desk, Json


class Seed(NamedTuple):
    """An action that breaks a rule, with the desk that it is asked of."""

    rule: str
    action: Action
    desk: Desk


def _changed(action: Action, **arguments: Any) -> Action:
    return action._replace(arguments={**action.arguments, **arguments})


class Seeder:
    """Breaks the rules of one right action on a desk, each in every way that the data allows."""

    def __init__(self, desk: Desk, action: Action, draw: random.Random) -> None:
        self.desk, self.action, self.draw = desk, action, draw
        self.users: list[str] = list(desk.data["users"])

    def other_user(self) -> str:
        return self.draw.choice([user for user in self.users if user != self.action.user])

    def foreign_method(self) -> str:
        own = self.desk.data["users"][self.action.user]["payment_methods"]
        found = [
            method
            for user in self.draw.sample(self.users, 20)
            for method in self.desk.data["users"][user]["payment_methods"]
            if method not in own
        ]
        return self.draw.choice(found)

    def as_other_user(self, rule: str) -> Iterator[Seed]:
        yield Seed(rule, self.action._replace(user=self.other_user()), self.desk)

    def changed(self, rule: str, **arguments: Any) -> Iterator[Seed]:
        yield Seed(rule, _changed(self.action, **arguments), self.desk)

    def on(self, rule: str, kind: str, id: str, **members: Any) -> Iterator[Seed]:
        """The action on an entity in another state."""
        desk = self.desk.copy_entity(kind, id)
        desk.data[kind][id].update(members)
        yield Seed(rule, self.action, desk)


class AirlineSeeder(Seeder):
    """Breaks the rules of the airline."""

    def list(self) -> Iterator[Seed]:
        name, arguments = self.action.name, self.action.arguments
        if name.startswith(("update_reservation", "cancel_reservation")):
            yield from self.as_other_user("own_reservation")
        if name in ("book_reservation", "send_certificate"):
            yield from self.as_other_user("own_profile")
        if "payment_id" in arguments:
            yield from self.changed("own_method", payment_id=self.foreign_method())
        found: dict[str, Callable[[Json], Iterator[Seed]]] = {
            "cancel_reservation": self._cancel, "update_reservation_flights": self._fly,
            "update_reservation_passengers": self._rename, "update_reservation_baggages": self._pack,
            "book_reservation": self._book, "send_certificate": self._send,
        }  # fmt: skip
        if name in found:
            yield from found[name](arguments)

    def _booked(self, arguments: Json) -> Json:
        booked: Json = self.desk.data["reservations"][arguments["reservation_id"]]
        return booked

    def _past(self, booked: Json) -> list[Json]:
        """The flights of a reservation with the first one on a day when it had landed."""
        first, *others = booked["flights"]
        days = self.desk.data["flights"][first["flight_number"]]["dates"]
        landed = [day for day, each in days.items() if each["status"] == "landed"]
        return [{**first, "date": landed[-1]}, *others]

    def _cancel(self, arguments: Json) -> Iterator[Seed]:
        id, booked = arguments["reservation_id"], self._booked(arguments)
        old = {"created_at": "2024-05-02T10:00:00", "cabin": "economy"}
        yield from self.on("cancel_flown", "reservations", id, flights=self._past(booked))
        if self.desk.facts(self.action)["reservation"]["cancelled"]:
            return
        yield from self.on("cancel_terms", "reservations", id, **old, insurance="no")
        for seed in self.on("cancel_terms", "reservations", id, **old, insurance="yes"):
            yield seed._replace(action=self.action._replace(reason="change of plan"))

    def _fly(self, arguments: Json) -> Iterator[Seed]:
        id, booked = arguments["reservation_id"], self._booked(arguments)
        past = self._past(booked)
        other = "business" if arguments["cabin"] != "business" else "economy"
        for seed in self.on("cabin_flown", "reservations", id, flights=past, cabin=other):
            yield seed._replace(action=_changed(self.action, flights=past))
        if self.desk.facts(self.action)["plan"]["changes_flights"]:
            yield from self.on(
                "basic_economy_keeps_flights", "reservations", id, cabin="basic_economy"
            )
            yield from self.on("seats_for_all", "reservations", id, passengers=[{}] * 30)
        elsewhere = self.draw.choice(list(self.desk.data["flights"].values()))
        if elsewhere["destination"] not in (booked["destination"], booked["origin"]):
            flight = {
                "flight_number": elsewhere["flight_number"],
                "date": arguments["flights"][-1]["date"],
            }
            yield from self.changed("same_route", flights=[*arguments["flights"][:-1], flight])
        mine = self.desk.data["users"][self.action.user]["payment_methods"].values()
        for method in mine:
            if method["source"] == "certificate":
                yield from self.changed("no_certificate", payment_id=method["id"])

    def _rename(self, arguments: Json) -> Iterator[Seed]:
        people = arguments["passengers"]
        yield from self.changed("as_many_passengers", passengers=[*people, people[0]])
        yield from self.changed("as_many_passengers", passengers=people[1:])

    def _pack(self, arguments: Json) -> Iterator[Seed]:
        id, bags, paid = (
            arguments["reservation_id"],
            arguments["total_baggages"],
            arguments["nonfree_baggages"],
        )
        yield from self.on("no_bag_removed", "reservations", id, total_baggages=bags + 1)
        yield from self.changed("bags_to_add", nonfree_baggages=paid + 1)
        yield from self.changed("bags_to_add", total_baggages=bags + 20)

    def _book(self, arguments: Json) -> Iterator[Seed]:
        paid, people = arguments["payment_methods"], arguments["passengers"]
        more = [{**paid[0], "amount": paid[0]["amount"] + 1}, *paid[1:]]
        foreign = [{**paid[0], "payment_id": self.foreign_method()}, *paid[1:]]
        yield from self.changed("price_of_a_booking", payment_methods=more)
        yield from self.changed(
            "price_of_a_booking", insurance="no" if arguments["insurance"] == "yes" else "yes"
        )
        yield from self.changed("methods_of_a_booking", payment_methods=foreign)
        yield from self.changed("five_passengers", passengers=[people[0]] * 6)
        yield from self.changed("bags_to_book", nonfree_baggages=arguments["nonfree_baggages"] + 1)
        yield from self.changed("same_route", destination="XXX")
        late = [{**each, "date": "2024-05-03"} for each in arguments["flights"]]
        yield from self.changed("seats_to_book", flights=late)
        mine = self.desk.data["users"][self.action.user]["payment_methods"].values()
        for kind in ("certificate", "credit_card"):
            same = [method["id"] for method in mine if method["source"] == kind]
            if len(same) > 1:
                total = sum(each["amount"] for each in paid)
                two = [
                    {"payment_id": same[0], "amount": 1},
                    {"payment_id": same[1], "amount": total - 1},
                ]
                yield from self.changed("methods_of_a_booking", payment_methods=two)

    def _send(self, arguments: Json) -> Iterator[Seed]:
        for amount in (arguments["amount"] + 1, arguments["amount"] + 50, arguments["amount"] * 4):
            yield from self.changed("how_much_is_compensated", amount=amount)


class RetailSeeder(Seeder):
    """Breaks the rules of the shop."""

    def list(self) -> Iterator[Seed]:
        name, arguments = self.action.name, self.action.arguments
        if name.startswith(("get_", "find_")):
            return
        if "order_id" in arguments:
            yield from self.as_other_user("own_order")
        if name == "modify_user_address":
            yield from self.as_other_user("own_profile")
        if "pending" in name:
            for status in ("processed", "delivered", "cancelled"):
                yield from self.on("pending", "orders", arguments["order_id"], status=status)
        if "delivered" in name:
            for status in ("processed", "pending", "return requested"):
                yield from self.on("delivered", "orders", arguments["order_id"], status=status)
        if "reason" in arguments:
            yield from self.changed("reason", reason="found it cheaper")
        if "payment_method_id" in arguments:
            yield from self.changed("own_method", payment_method_id=self.foreign_method())
        if "item_ids" in arguments:
            yield from self._items(arguments)
        if "new_item_ids" in arguments:
            yield from self._new_items(arguments)
        if name == "return_delivered_order_items":
            yield from self._money_elsewhere()
        if name == "modify_pending_order_payment":
            paid = self.desk.facts(self.action)["order"]["paid_with"]
            yield from self.changed("another_method", payment_method_id=paid)

    def _items(self, arguments: Json) -> Iterator[Seed]:
        order = self.draw.choice(list(self.desk.data["orders"].values()))
        own = [each["item_id"] for each in self.desk.data["orders"][arguments["order_id"]]["items"]]
        foreign = [each["item_id"] for each in order["items"] if each["item_id"] not in own]
        if foreign:
            yield from self.changed(
                "items_of_the_order", item_ids=[foreign[0], *arguments["item_ids"][1:]]
            )

    def _new_items(self, arguments: Json) -> Iterator[Seed]:
        new = arguments["new_item_ids"]
        meant = self.desk.product_of(new[0])
        for product in self.draw.sample(list(self.desk.data["products"].values()), 2):
            if product["product_id"] != meant:
                other = self.draw.choice(list(product["variants"]))
                yield from self.changed("same_product", new_item_ids=[other, *new[1:]])
        variants = self.desk.data["products"][meant]["variants"]
        gone = [id for id, each in variants.items() if not each["available"]]
        if gone:
            yield from self.changed("new_items_are_there", new_item_ids=[gone[0], *new[1:]])
        yield from self.changed("items_of_the_order", new_item_ids=[*new, new[0]])
        facts = self.desk.facts(self.action)
        methods = self.desk.data["users"][self.action.user]["payment_methods"].values()
        for method in methods:
            if (
                method["source"] == "gift_card"
                and method["balance"] < facts["change"]["difference"]
            ):
                yield from self.changed(
                    "card_covers_the_difference", payment_method_id=method["id"]
                )

    def _money_elsewhere(self) -> Iterator[Seed]:
        paid = self.desk.facts(self.action)["order"]["paid_with"]
        methods = self.desk.data["users"][self.action.user]["payment_methods"].values()
        for method in methods:
            if method["source"] != "gift_card" and method["id"] != paid:
                yield from self.changed("money_goes_back", payment_method_id=method["id"])


SEEDERS: dict[str, type[AirlineSeeder] | type[RetailSeeder]] = {
    "airline": AirlineSeeder,
    "retail": RetailSeeder,
}
