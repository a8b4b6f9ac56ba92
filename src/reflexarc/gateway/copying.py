"""A copy of an answer, kept while it passes, for comparing and for the store."""

from reflexarc.upstream import Answer


class Copy:
    """Keeps an answer for comparison, up to a limit; past it nothing is kept. `dialect` is what its
    bytes are in, the upstream's."""

    def __init__(self, max_bytes: int, dialect: str = "chat") -> None:
        self.dialect = dialect
        self.status = 0
        self.content_type = ""
        self.content_encoding = ""
        self.complete = False
        self.max_bytes = max_bytes
        self._size = 0
        self._parts: list[bytes] = []

    def begin(self, answer: Answer) -> None:
        self.status = answer.status
        for name, value in answer.headers:
            lower = name.lower()
            if lower == b"content-type":
                self.content_type = value.decode("latin-1")
            elif lower == b"content-encoding":
                self.content_encoding = value.decode("latin-1")

    def add(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self._size <= self.max_bytes:
            self._parts.append(chunk)
        else:
            self._parts.clear()

    def replace(self, body: bytes) -> None:
        """This was the answer, for whoever reads it from here on."""
        self._parts = [body] if len(body) <= self.max_bytes else []
        self._size = len(body)
        self.content_encoding = ""

    @property
    def overflown(self) -> int:
        """Bytes of an answer that was too long to keep; 0 where it was not."""
        return self._size if self._size > self.max_bytes else 0

    @property
    def kept(self) -> bytes:
        """What is kept of it, complete or not."""
        return b"".join(self._parts)

    @property
    def body(self) -> bytes | None:
        """None where the answer did not end or was too long to keep."""
        if not self.complete or self._size > self.max_bytes:
            return None
        return b"".join(self._parts)
