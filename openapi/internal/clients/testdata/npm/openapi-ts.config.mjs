// The client checks every reply against schemas that are made of the document.
export default {
  input: 'openapi.yaml',
  output: 'generated/hey-api',
  plugins: [
    '@hey-api/client-fetch',
    '@hey-api/typescript',
    'zod',
    { name: '@hey-api/sdk', validator: { response: 'zod' } },
  ],
};
