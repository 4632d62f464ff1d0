package api

// BasePath is where the API stands; the version is part of it (spec 9).
const BasePath = "/api/v1"
