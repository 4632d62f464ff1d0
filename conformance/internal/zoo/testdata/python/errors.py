"""Errors with a code of JSON-RPC."""


class RPCError(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code
