"""Tests of the endpoint over HTTP: python3 -m unittest"""

import json
import os
import tempfile
import unittest
import urllib.error
import urllib.request

from main import start
from schema import SPEED

TOKEN = "test-token"


class EndpointTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        os.environ["DATABASE"] = os.path.join(cls.folder.name, "test.db")  # for a store with a file
        cls.endpoint, cls.hooks, cls.store = start(TOKEN, port=0, hooks_port=0, log=lambda line: None)

    @classmethod
    def tearDownClass(cls):
        cls.endpoint.stop()
        cls.hooks.stop()
        cls.store.close()
        cls.folder.cleanup()

    def post(self, url, body, authorization=f"Bearer {TOKEN}"):
        request = urllib.request.Request(url, data=body, headers={"Authorization": authorization})
        try:
            with urllib.request.urlopen(request) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def call(self, method, **params):
        request = {"jsonrpc": "2.0", "method": method, "params": params, "id": "1"}
        return self.post(self.endpoint.url, json.dumps(request).encode())[1]

    def sync(self, target, operation, key, *records):
        schema = {name: {"active_identifier": name == key} for name in records[0]}
        plan = {"object": {"object_api_name": target, "label": target}, "operation": operation, "schema": schema}
        return self.call("sync_batch", sync_plan=plan, records=records)

    def outcomes(self, *args):
        return [result["success"] for result in self.sync(*args)["result"]["record_results"]]

    def stored(self, target, key, *identifiers):
        question = {"object": target, "identifier_field": key, "identifiers": identifiers}
        _, answer = self.post(self.hooks.url + "/readback", json.dumps(question).encode())
        return [record["fields"] for record in answer["records"]]

    def test_planning(self):
        self.assertEqual(self.call("test_connection")["result"], {"success": True})
        for target in self.call("list_objects")["result"]["objects"]:
            fields = self.call("list_fields", object=target)["result"]["fields"]
            self.assertTrue(any(field["identifier"] and field["required"] for field in fields))
            self.assertIn("upsert", self.call("supported_operations", object=target)["result"]["operations"])
        self.assertEqual(self.call("get_sync_speed")["result"], SPEED)

    def test_errors_have_the_codes_of_json_rpc(self):
        for body, code in ((b'{"jsonrpc"', -32700), (b"[NaN]", -32700), (b'{"id":"1"}', -32600)):
            self.assertEqual(self.post(self.endpoint.url, body)[1]["error"]["code"], code)
        self.assertEqual(self.call("unknown")["error"]["code"], -32601)
        self.assertEqual(self.call("list_fields")["error"]["code"], -32602)

    def test_the_token_is_needed(self):
        for authorization in ("", "Bearer wrong", f"Basic {TOKEN}"):
            self.assertEqual(self.post(self.endpoint.url, b"{}", authorization)[0], 401)

    def test_each_operation_does_what_its_name_says(self):
        ada = {"email": "ada@example.com", "name": "Ada"}
        self.assertEqual(self.outcomes("contact", "update", "email", ada), [False])
        self.assertEqual(self.outcomes("contact", "insert", "email", ada, ada), [True, False])
        self.assertEqual(self.outcomes("contact", "update", "email", {"email": ada["email"], "age": 36}), [True])
        (record,) = self.stored("contact", "email", ada["email"])
        self.assertEqual((record["name"], record["age"]), ("Ada", 36))
        self.assertEqual(self.outcomes("contact", "upsert", "email", {**ada, "name": None}), [True])
        self.assertIsNone(self.stored("contact", "email", ada["email"])[0]["name"])
        self.assertEqual(self.outcomes("contact", "delete", "email", ada), [True])
        self.assertEqual(self.stored("contact", "email", ada["email"]), [])

    def test_a_bad_record_does_not_stop_the_others(self):
        bad = {"email": "a@example.com", "birthday": "2023-02-30"}
        good = {"email": "b@example.com", "birthday": "2024-02-29"}
        self.assertEqual(self.outcomes("contact", "upsert", "email", bad, good), [False, True])
        self.assertEqual(len(self.stored("contact", "email", bad["email"], good["email"])), 1)
        self.assertEqual(self.outcomes("contact", "delete", "email", bad, good), [True, True])

    def test_integers_of_64_bits_are_kept(self):
        ids = (2**53, 2**53 + 1, 2**63 - 1, -(2**63))
        records = [{"account_id": i, "employees": i} for i in ids]
        results = self.sync("account", "upsert", "account_id", *records)["result"]["record_results"]
        self.assertEqual([result["identifier"] for result in results], list(ids))
        self.assertEqual([record["employees"] for record in self.stored("account", "account_id", *ids)], list(ids))
        self.assertEqual(self.outcomes("account", "delete", "account_id", *records), [True] * 4)

    def test_limits_are_held(self):
        records = [{"account_id": i} for i in range(SPEED["maximum_batch_size"] + 1)]
        self.assertEqual(self.sync("account", "upsert", "account_id", *records)["error"]["code"], -32602)


if __name__ == "__main__":
    unittest.main()
