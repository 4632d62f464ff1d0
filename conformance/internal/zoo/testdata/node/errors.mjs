// Errors with a code of JSON-RPC.
export class RPCError extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

export const badParams = (message) => new RPCError(-32602, message);
