"""The token that a client over HTTP has to send."""

import hmac
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from pydantic import AnyHttpUrl

from pytorch_to_triton.errors import BadInput

VARIABLE = "PYTORCH_TO_TRITON_TOKEN"
LEAST_CHARACTERS = 20


@dataclass(frozen=True)
class Bearer:
    """One token, which gives all rights; the SDK refuses requests without it."""

    token: str

    async def verify_token(self, token: str) -> AccessToken | None:
        """What a request with this token may do; None: nothing."""
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            return None
        return AccessToken(token=token, client_id="local", scopes=[])


def chosen_token(environment: Mapping[str, str] = os.environ) -> str:
    """The token that the environment sets, else a new one. Raises BadInput for one that is easily guessed."""
    given = environment.get(VARIABLE)
    if given is None:
        return secrets.token_urlsafe(32)
    if len(given) < LEAST_CHARACTERS or not given.isascii() or not given.isprintable() or " " in given:
        raise BadInput(
            f"{VARIABLE} is no usable token.",
            f"Set it to {LEAST_CHARACTERS} or more letters and digits, or leave it unset for a new one.",
        )
    return given


def auth_at(address: str) -> AuthSettings:
    """How the SDK tells clients that a token is wanted; there is no server that would issue one."""
    url = AnyHttpUrl(address)
    # There is one token and one server: nothing else that a token could have been issued for.
    return AuthSettings(issuer_url=url, resource_server_url=url, validate_token_resource=False)
