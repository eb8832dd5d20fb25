"""Makes toy calls: a text backwards or twice, with the service's mark."""

from cogcli.protocols.invoker import (
    CallLimits,
    InvocationRequest,
    InvocationResponse,
    InvokerContext,
)


class Toy:
    """One per run."""

    def __init__(self, context: InvokerContext) -> None:
        self._clock = context.clock

    def invoke(self, request: InvocationRequest, limits: CallLimits) -> InvocationResponse:
        text = request.payload["text"]
        made = text[::-1] if request.operation == "reverse" else text * 2
        return InvocationResponse({"text": made + request.service.settings["mark"]})

    def close(self, grace: float) -> None:
        """There is nothing to close."""
