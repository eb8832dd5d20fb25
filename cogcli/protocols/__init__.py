"""How a service is called: one attempt at a time, over one of the protocols pythoncall, openapi, openrpc and mcp.

`registry.INVOKERS` names the invoker of each protocol, `invoker` holds their contract: an invoker turns an
`InvocationRequest` into an `InvocationResponse`, or raises an error of docs/reference/protocols.md#failures. Timeouts,
retries, fallbacks and mapping belong to the callers. Each protocol has a folder; `http` holds what openapi, openrpc and
mcp share.
"""
