// The program cannot be started, or does not do what was asked of it.
export class DestkitError extends Error {
  name = 'DestkitError';
}

// A response with a status of 400 or more. body is decoded JSON, or text where it is none.
export class ApiError extends DestkitError {
  name = 'ApiError';
  constructor(message, status, body) {
    super(message);
    this.status = status;
    this.body = body;
  }
}
