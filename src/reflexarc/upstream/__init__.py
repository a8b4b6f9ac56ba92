"""System 2: HTTP transport to a model server. Bytes pass through it unchanged."""

from reflexarc.upstream.headers import KEY_NAMES as KEY_NAMES
from reflexarc.upstream.headers import Key as Key
from reflexarc.upstream.headers import converted_request_headers as converted_request_headers
from reflexarc.upstream.headers import converted_response_headers as converted_response_headers
from reflexarc.upstream.headers import forwarded_request_headers as forwarded_request_headers
from reflexarc.upstream.headers import forwarded_response_headers as forwarded_response_headers
from reflexarc.upstream.transport import Answer as Answer
from reflexarc.upstream.transport import Reach as Reach
from reflexarc.upstream.transport import Timeouts as Timeouts
from reflexarc.upstream.transport import Transport as Transport
from reflexarc.upstream.transport import never_sent as never_sent
