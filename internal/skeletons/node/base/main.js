// Starts the endpoint: settings come from the environment.
import { start } from './server.js';

const { DESTINATION_TOKEN, HOST, PORT, HOOKS_PORT } = process.env;

const endpoint = await start({
  token: DESTINATION_TOKEN,
  host: HOST,
  port: PORT && Number(PORT),
  hooksPort: HOOKS_PORT && Number(HOOKS_PORT),
}).catch((error) => {
  console.error(`cannot start: ${error.message}`);
  process.exit(1);
});
console.log(`listening ${endpoint.url}`);
if (endpoint.hooksUrl) console.log(`hooks ${endpoint.hooksUrl}`);

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => endpoint.close().then(() => process.exit(0)));
}
