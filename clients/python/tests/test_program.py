"""Errors, and the end of a server."""

import os
import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.parse

import pytest

import destkit


def script(folder, name, text):
    path = folder / name
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_missing_program(monkeypatch, tmp_path):
    monkeypatch.delenv("DESTKIT_BIN", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(destkit.DestkitError, match="destkit is not in PATH: install it .*or set DESTKIT_BIN"):
        destkit.Service()


def test_wrong_program(monkeypatch, tmp_path):
    monkeypatch.setenv("DESTKIT_BIN", str(tmp_path / "gone"))
    with pytest.raises(destkit.DestkitError, match="DESTKIT_BIN is .*gone, which is no program"):
        destkit.Service()
    monkeypatch.setenv("DESTKIT_BIN", str(script(tmp_path, "other", "echo hello\n")))
    with pytest.raises(destkit.DestkitError, match="does not answer as destkit does: .*It printed: 'hello'"):
        destkit.Service()


def test_old_program(monkeypatch, tmp_path):
    old = script(tmp_path, "old", '[ "$1" = --version ] && echo destkit v0.1.0 && exit\necho "unknown flag: --exit-with-stdin" >&2\nexit 2\n')
    monkeypatch.setenv("DESTKIT_BIN", str(old))
    with pytest.raises(destkit.DestkitError, match=r"is too old for these helpers \(destkit v0.1.0\): install a newer destkit"):
        destkit.Service()


def test_failed_start():
    with pytest.raises(destkit.DestkitError, match=r'did not start \(exit status 2\): .*--dialect "spoken"'):
        destkit.Service("--dialect", "spoken")


def test_settings_of_the_shell_do_not_count(monkeypatch):
    monkeypatch.setenv("DESTKIT_WORKSPACE_API_KEY", "key-of-a-developer-1234567890")
    with destkit.Service() as service:
        with pytest.raises(destkit.ApiError) as error:
            service.new_organization().call("GET", "/syncs", token="key-of-a-developer-1234567890")
    assert error.value.status == 401


def test_stop_is_clean_and_repeatable():
    service = destkit.Service()
    process = service._process._process
    service.stop()
    service.stop()
    assert process.returncode == 0


def test_organizations_are_apart(destkit_service):
    first, second = destkit_service.new_organization(), destkit_service.new_organization(workspaces=["A", "B"])
    assert [w["name"] for w in second.workspaces] == ["A", "B"]
    fault = first.arm_fault("status", status=500, operation="listSyncs")
    assert second.call("GET", "/syncs")["data"] == []
    assert (fault.fired, first.requests(), len(second.requests())) == (0, [], 1)
    with pytest.raises(destkit.ApiError, match="500"):
        first.call("GET", "/syncs")
    fault.disarm()
    assert first.call("GET", "/syncs")["data"] == []
    first.reset()
    assert first.call("GET", "/syncs")["data"] == []
    first.call("POST", "/invitations", {"email": "new@example.com", "role": "member", "workspaces": [{"id": first.workspace_id, "role": "viewer"}]}, token=first.personal_access_token)
    assert [m["to"] for m in first.mails()] == [["new@example.com"]]
    assert second.mails() == []
    first.delete()
    with pytest.raises(destkit.ApiError, match="401"):
        first.call("GET", "/syncs")


def listening(url):
    """Whether a server still takes connections."""
    try:
        socket.create_connection(urllib.parse.urlsplit(url).netloc.split(":")).close()
        return True
    except ConnectionRefusedError:
        return False


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is a signal of Unix")
def test_servers_end_when_the_tests_are_killed():
    code = "import destkit, time; print(destkit.Service().url, destkit.Destination().url, flush=True); time.sleep(600)"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    urls = child.stdout.readline().decode().split()
    assert len(urls) == 2 and all(listening(url) for url in urls)
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    while any(listening(url) for url in urls):  # the limit is that of the whole test run
        time.sleep(0.02)


def test_log_in_the_report_of_a_failure(pytester, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    pytester.makepyfile("""
        def test_good(destkit_organization):
            destkit_organization.call("GET", "/destinations")

        def test_bad(destkit_organization):
            destkit_organization.call("GET", "/syncs")
            assert False
    """)
    pytester.makeconftest("pytest_plugins = ['destkit.plugin']")
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*Log of destkit serve during this test*", "*path=/api/v1/syncs*"])
    result.stdout.no_fnmatch_line("*path=/api/v1/destinations*")
