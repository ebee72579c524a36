"""The environment of processes that run other people's code: this one's, without what opens other doors."""

import os
import re
from collections.abc import Mapping

_SECRET = re.compile(
    r"TOKEN|SECRET|PASSW|CREDENTIAL|COOKIE|(API|ACCESS|PRIVATE|ACCOUNT|SIGNING)_?KEY|_KEY$|AUTH|"
    r"^(SSH|GPG)_|^GIT_ASKPASS$|_DSN$|DATABASE_URL|CONNECTION_STRING",
    re.IGNORECASE,
)


def job_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Every variable but those whose name says that they hold a secret or lead to an agent that does."""
    return {name: value for name, value in environment.items() if not _SECRET.search(name)}
