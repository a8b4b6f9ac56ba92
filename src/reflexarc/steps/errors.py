"""Every error this package raises, in one tree.

ReflexarcError
├── InputError              the caller's data does not fit            400
│   ├── RequestError        a request body does not fit               422
│   ├── MalformedError      not JSON, duplicate keys, too deep        400
│   ├── TooLargeError       over a stated limit                       413
│   └── SessionLineError    a line of recorded work does not fit      400
├── ConfigError             configuration names something unknown     500
├── LearnError              nothing can be learned from this data     400
├── ArtifactError           a .reflex file cannot be used             500
│   ├── ArtifactCorruptError   truncated or tampered with
│   └── ArtifactVersionError   written by a newer format
├── StoreError              what was recorded cannot be used          500
│   └── StoreVersionError   written by a newer schema
├── AccountError            what a virtual key may not do             403
│   ├── KeyRefusedError     unknown, expired or revoked               401
│   ├── NotAllowedError     a model, a tier that is not its           403
│   ├── BudgetError         a budget does not cover it                402
│   ├── RateLimitError      too many, too fast, too many at once      429
│   └── BookError           what is spent cannot be written down      503
├── QueueFullError          the batch queue holds all it may          429
└── UpstreamError           System 2 could not be asked               502
    ├── UpstreamUnreachableError                                      502
    └── UpstreamTimeoutError                                          504

Each class carries a stable `code` and the HTTP `status` a gateway answers with;
the message says what was wrong, where, and what to do.
"""

from typing import ClassVar


class ReflexarcError(Exception):
    """Root of the tree. `code` is stable across releases; `status` is the HTTP face."""

    code: ClassVar[str] = "internal_error"
    status: ClassVar[int] = 500


class InputError(ReflexarcError):
    code = "invalid_input"
    status = 400


class RequestError(InputError):
    """A well-formed body with a field that does not fit; `param` is its path."""

    code = "invalid_request"
    status = 422

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


class MalformedError(InputError):
    code = "malformed_body"


class TooLargeError(InputError):
    code = "too_large"
    status = 413


class SessionLineError(InputError):
    """One line of recorded work that cannot be read."""

    code = "bad_line"

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where}: {why}")
        self.where = where
        self.why = why


class ConfigError(ReflexarcError):
    code = "bad_config"


class LearnError(ReflexarcError):
    code = "cannot_learn"
    status = 400


class ArtifactError(ReflexarcError):
    code = "artifact_unusable"


class ArtifactCorruptError(ArtifactError):
    code = "artifact_corrupt"


class ArtifactVersionError(ArtifactError):
    code = "artifact_too_new"


class StoreError(ReflexarcError):
    code = "store_unusable"


class StoreVersionError(StoreError):
    code = "store_too_new"


class AccountError(ReflexarcError):
    code = "not_allowed"
    status = 403


class KeyRefusedError(AccountError):
    code = "key_refused"
    status = 401


class NotAllowedError(AccountError):
    """`param` names the field of the request that asks for it."""

    code = "not_allowed"

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


class BudgetError(AccountError):
    """`budget` is it as people write it; `left_micro_usd` of it is neither spent nor reserved;
    `renews_unix_s` is None where it never renews."""

    code = "budget_spent"
    status = 402

    def __init__(
        self, message: str, budget: str, left_micro_usd: int, renews_unix_s: float | None
    ) -> None:
        super().__init__(message)
        self.budget = budget
        self.left_micro_usd = left_micro_usd
        self.renews_unix_s = renews_unix_s


class RateLimitError(AccountError):
    """`retry_after_s`: in how many seconds the same request may pass."""

    code = "rate_limited"
    status = 429

    def __init__(self, message: str, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class BookError(AccountError):
    code = "book_unusable"
    status = 503


class QueueFullError(ReflexarcError):
    """`retry_after_s`: in how many seconds there may be room; an estimate."""

    code = "queue_full"
    status = 429

    def __init__(self, message: str, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class UpstreamError(ReflexarcError):
    code = "upstream_failed"
    status = 502


class UpstreamUnreachableError(UpstreamError):
    code = "upstream_unreachable"


class UpstreamTimeoutError(UpstreamError):
    code = "upstream_timeout"
    status = 504
