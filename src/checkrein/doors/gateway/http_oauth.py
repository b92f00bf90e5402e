"""Signing in at servers that listen, with the `mcp` package's own flow. `http_client` asks for it.

What it is granted is kept for the next time; the secret of a client a person registered never is.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError, OAuthTokenError
from mcp.client.auth.utils import issuers_match
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
)

from checkrein.doors.gateway.outside import Outside
from checkrein.doors.gateway.pipes import PipeError, SignIn
from checkrein.doors.gateway.signed_in import keep_sign_in, read_sign_in

if TYPE_CHECKING:
    from checkrein.settings.servers import ServerSpec

# Nobody listens there; a person who signs in brings an address where somebody does.
_NOWHERE = "http://127.0.0.1/callback"
# How a provider that does not say is told a client's secret (RFC 8414), and what else it may want.
_BASIC, _POST = "client_secret_basic", "client_secret_post"


class Provider(OAuthClientProvider):
    """Signs in with what is kept; where that is not enough, a person is asked."""

    def __init__(self, spec: ServerSpec, outside: Outside, sign_in: SignIn | None) -> None:
        self._name, self._outside, self._sign_in = spec.name, outside, sign_in
        self._given = spec.client
        self._kept = read_sign_in(spec.name, spec.url, spec.client.client_id)
        self._answer: AuthorizationCodeResult | None = None
        address = sign_in.redirect_uri if sign_in else _NOWHERE
        super().__init__(
            server_url=spec.url,
            client_metadata=OAuthClientMetadata(
                client_name="Checkrein",
                redirect_uris=[address],  # type: ignore[list-item]  # it makes a URL of it
                token_endpoint_auth_method="none",  # noqa: S106 - we keep no secret that could be one
            ),
            storage=self,
            redirect_handler=self._ask,
            callback_handler=self._answered,
        )

    async def _initialize(self) -> None:
        # What is kept says more than the tokens: when they end, and who makes new ones.
        await super()._initialize()
        self.context.token_expiry_time = self._kept.expires_at
        if self._kept.metadata is not None:
            self.context.oauth_metadata = OAuthMetadata.model_validate(self._kept.metadata)
            self.context.auth_server_url = str(self.context.oauth_metadata.issuer)

    async def _refresh_token(self) -> httpx2.Request:
        # Another connection to the same server may have done so before, and what it had is used up.
        self._kept = read_sign_in(self._name, self._kept.url, self._kept.given)
        self.context.current_tokens = await self.get_tokens()
        self.context.client_info = await self.get_client_info()
        self._choose_method()
        if not self.context.can_refresh_token():
            raise self._nobody()
        return await super()._refresh_token()

    async def _handle_refresh_response(self, response: httpx2.Response) -> bool:
        # Out of order is not a no: what is kept may be good again in a moment.
        if response.status_code >= 500 or response.status_code == 429:
            raise PipeError(
                f"{self._name}: the sign-in cannot be renewed now (HTTP {response.status_code}).",
                remedy="Try again later.",
            )
        return await super()._handle_refresh_response(response)

    def _expected_issuer(self) -> str:
        # Asked before we register anywhere, which nobody wants who does not sign in then.
        if self._sign_in is None:
            raise self._nobody()
        expected = super()._expected_issuer()
        bound = (self._kept.client or {}).get("issuer") if self._kept.given else None
        # INVARIANT: a secret given for one provider is told to no other, whatever the server says later.
        if bound and not issuers_match(bound, expected):
            raise PipeError(
                f"{self._name} sends people to another provider than before: {_plain(expected)},"
                f" not {_plain(bound)}.",
                remedy=f"If that is right, run `checkrein servers sign-out {self._name}` and sign in again.",
                lasting=True,
            )
        return expected

    async def _perform_authorization(self) -> httpx2.Request:
        # What a person wrote down is asked for, and nothing else a server would like.
        if self._given.scope:
            self.context.client_metadata.scope = self._given.scope
        self._choose_method()
        return await super()._perform_authorization()

    def _choose_method(self) -> None:
        """How a given client's secret is told, of what its provider takes."""
        client, metadata = self.context.client_info, self.context.oauth_metadata
        if client is None or not self._given.client_secret:
            return
        taken = metadata.token_endpoint_auth_methods_supported if metadata else None
        client.token_endpoint_auth_method = _POST if taken and _BASIC not in taken else _BASIC

    def _nobody(self) -> PipeError:
        return PipeError(
            f"{self._name} asks for a sign-in.",
            remedy=f"Run `checkrein servers sign-in {self._name}`.",
            lasting=True,
        )

    async def _ask(self, url: str) -> None:
        if self._sign_in is None:
            raise self._nobody()
        # A person's browser is sent nowhere we would not go ourselves.
        await self._outside.addresses(url)
        found = await self._sign_in(url)
        self._answer = AuthorizationCodeResult(code=found.code, state=found.state, iss=found.iss)

    async def _answered(self) -> AuthorizationCodeResult:
        assert self._answer is not None  # noqa: S101 - `_ask` came before
        return self._answer

    async def get_tokens(self) -> OAuthToken | None:
        return OAuthToken.model_validate(self._kept.tokens) if self._kept.tokens else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._kept.tokens = tokens.model_dump(mode="json", exclude_none=True)
        self._kept.expires_at = None if tokens.expires_in is None else time.time() + tokens.expires_in
        metadata = self.context.oauth_metadata
        self._kept.metadata = metadata.model_dump(mode="json", exclude_none=True) if metadata else None
        if self._kept.given:
            self._kept.client = {"client_id": self._kept.given, "issuer": super()._expected_issuer()}
        keep_sign_in(self._name, self._kept)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        if self._given.client_id:
            return OAuthClientInformationFull(
                client_id=self._given.client_id,
                client_secret=self._given.client_secret or None,
                token_endpoint_auth_method="none",  # noqa: S106 - chosen when it is known what is taken
            )
        if self._kept.client is None:
            return None
        found = OAuthClientInformationFull.model_validate(self._kept.client)
        known = [str(each) for each in found.redirect_uris or ()]
        # Registered for another way back than the one the person will come.
        return None if self._sign_in and self._sign_in.redirect_uri not in known else found

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        # Written down with the tokens made for it: an attempt that is given up spoils nothing.
        self._kept.client = client_info.model_dump(mode="json", exclude_none=True)


def trouble(name: str, error: BaseException) -> PipeError | None:
    """What went wrong while signing in, in words for a person; None when it was something else."""
    if not isinstance(error, OAuthFlowError):
        return None
    said = _plain(str(error))
    if isinstance(error, OAuthRegistrationError):
        return PipeError(
            f"{name} does not let programs register themselves for a sign-in: {said}.",
            remedy='Register a client there and give its id ("oauth": {"clientId": "..."} in the servers'
            " file), or give an access token as a header.",
            lasting=True,
        )
    if said.startswith("State parameter mismatch"):
        said = "what came back was not the answer to our question"
    elif isinstance(error, OAuthTokenError):
        said = f"no token was given ({said})"
    return PipeError(
        f"Signing in at {name} failed: {said}.",
        remedy=f"Run `checkrein servers sign-in {name}` to try again.",
    )


def _plain(text: str) -> str:
    return "".join(char for char in text if char.isprintable())[:200].rstrip(".")
