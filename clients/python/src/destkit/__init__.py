"""Start the destkit service and simulated destinations in tests.

With pytest use the fixtures of destkit.plugin: destkit_service, destkit_organization
and destkit_destination. The classes here work without pytest.
"""

from .destination import Destination
from .errors import ApiError, DestkitError
from .service import Fault, Organization, Service

__all__ = ["ApiError", "Destination", "DestkitError", "Fault", "Organization", "Service"]
