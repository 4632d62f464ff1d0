"""Fixtures of pytest.

destkit_service is one service for the whole session, destkit_organization an
organization for each test, destkit_destination a simulated destination for each test.
Override destkit_serve_args and destkit_destsim_args to give flags.
"""

import pytest

from . import program
from .destination import Destination
from .service import Service

_begun = pytest.StashKey()


@pytest.fixture(scope="session")
def destkit_serve_args():
    """Flags of destkit serve."""
    return []


@pytest.fixture
def destkit_destsim_args():
    """Flags of destkit destsim."""
    return []


@pytest.fixture(scope="session")
def destkit_service(destkit_serve_args):
    """A service for all tests of the session."""
    with Service(*destkit_serve_args) as service:
        yield service


@pytest.fixture
def destkit_organization(destkit_service, request):
    """An organization for this test: with a workspace and tokens, apart from all others."""
    organization = destkit_service.new_organization(request.node.name)
    yield organization
    organization.delete()


@pytest.fixture
def destkit_destination(destkit_destsim_args):
    """A simulated destination for this test."""
    with Destination(*destkit_destsim_args) as destination:
        yield destination


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    item.stash[_begun] = {process: process.log_size() for process in program.running}


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if not report.failed:
        return
    begun = item.stash.get(_begun, {})
    for process in list(program.running):
        text = process.log(begun.get(process, 0))
        if text:
            report.sections.append((f"Log of destkit {process.command} during this test", text))
