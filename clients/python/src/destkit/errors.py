"""Errors of the helpers."""


class DestkitError(Exception):
    """The program cannot be started, or does not do what was asked of it."""


class ApiError(DestkitError):
    """A response with a status of 400 or more.

    status is the HTTP status, body the decoded JSON, or text where it is none.
    """

    def __init__(self, message, status, body):
        super().__init__(message)
        self.status = status
        self.body = body
