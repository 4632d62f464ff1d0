// Habits that are right and unusual: what they change of an endpoint.
export const habits = {
  'gzip-when-asked': (app) => { app.compressed = true; },
  'status-201-for-batches': (app) => { app.status = 201; },
  'results-as-they-come': (app) => { app.results = (results) => results.sort(() => Math.random() - 0.5); },
};
