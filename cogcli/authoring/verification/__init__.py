"""Verification of bindings and invokers: scenarios, mock servers, checks of an exchange by an API
document, and the rules of `verify-invoker` and `verify-errors`.
"""
