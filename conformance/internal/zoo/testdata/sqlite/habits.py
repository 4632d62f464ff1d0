"""Habits that are right and unusual: what they change of an endpoint."""

from tables import field


def odd_names(app):
    app.tables["customers"]["fields"] += [field("Vor- und Nachname", "string"), field("select", "string"), field("größe", "integer")]


def decimals_padded(app):
    def shown(f, value):
        if f["type"] == "decimal" and isinstance(value, str):
            whole, _, digits = value.partition(".")
            return whole + "." + digits.ljust(10, "0")
        return value
    app.shown = shown


def moments_with_offset(app):
    app.shown = lambda f, value: value.replace("Z", "+00:00") if f["type"] == "date_time" and value else value


def absent_deletes_fail(app):
    app.absent = "no such record"


def one_writer(app):
    app.speed = {"maximum_batch_size": 50, "maximum_parallel_batches": 1, "maximum_records_per_second": 20000}


def batches_of_4000(app):
    app.speed["maximum_batch_size"] = 4000


def rows_of_a_log(app):
    app.results = lambda results: [{**r, "row": n, "warnings": [], "took": 0.25} for n, r in enumerate(results)]


HABITS = {
    "odd-names": odd_names,
    "decimals-padded": decimals_padded,
    "moments-with-offset": moments_with_offset,
    "absent-deletes-fail": absent_deletes_fail,
    "one-writer": one_writer,
    "batches-of-4000": batches_of_4000,
    "more-members-in-results": rows_of_a_log,
    "pretty-printed": lambda app: None,  # in the server
    "chunked-replies": lambda app: None,
    "http-1-0": lambda app: None,
    "deleted-rows-are-kept": lambda app: None,  # in the writer
    "equal-rows-not-written": lambda app: None,
}
