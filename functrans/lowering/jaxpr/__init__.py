"""Passes that turn a jaxpr into another one."""
