// Start the destkit service and simulated destinations in tests.
export { startDestination } from './destination.js';
export { ApiError, DestkitError } from './errors.js';
export { startService } from './service.js';
