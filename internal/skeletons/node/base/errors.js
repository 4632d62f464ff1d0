// An error that the caller may read: its code and message are shown to users.
export class RpcError extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}
