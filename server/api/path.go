package api

// BasePath is the root of the API and includes the version (spec 9).
const BasePath = "/api/v1"
