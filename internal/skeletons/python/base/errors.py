"""Errors that the caller may read: code and message are shown to users."""

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
FAILED, UNAUTHORIZED = -32000, -32001


class RpcError(Exception):
    """An error of JSON-RPC."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code, self.message = code, message
