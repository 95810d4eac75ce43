"""A real OTLP receiver over HTTP, and the spans that arrive there."""

from __future__ import annotations

import gzip
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as WireSpan
from opentelemetry.proto.trace.v1.trace_pb2 import Status


@dataclass(frozen=True)
class Received:
    """A span as it arrived. Ids are hexadecimal, times are in nanoseconds."""

    name: str
    trace: str
    id: str
    parent: str
    links: tuple[tuple[str, str], ...]
    attributes: dict[str, Any]
    started: int
    ended: int
    failed: bool
    scope: str

    def own(self) -> dict[str, Any]:
        """Its attributes that are ours, without our prefix."""
        prefix = "agboss.compensation."
        found = {n: v for n, v in self.attributes.items() if n.startswith(prefix)}
        return {name.removeprefix(prefix): value for name, value in found.items()}


class Receiver:
    """Takes spans in; everything is kept as it came, copies too."""

    def __init__(self) -> None:
        self.spans: list[Received] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                receiver.spans += _read(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @contextmanager
    def listening(self) -> Iterator[Receiver]:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()

    def named(self, *prefixes: str) -> list[Received]:
        """The spans whose names begin like this, in the order in which they began."""
        found = [each for each in self.spans if each.name.startswith(prefixes)]
        return sorted(found, key=lambda each: each.started)

    def one(self, name: str) -> Received:
        [found] = self.named(name)
        return found

    def tree(self) -> Counter[str]:
        """Each span as its path from the root, and what it is linked to: with how often it came."""
        return Counter(map(self._described, self.spans))

    def _described(self, span: Received) -> str:
        path = [span.name]
        above = self._by_id(span.trace, span.parent)
        while above is not None:
            path.insert(0, above.name)
            above = self._by_id(above.trace, above.parent)
        targets = [self._by_id(*link) for link in span.links]
        to = "".join(f" => {each.name if each else '?'}" for each in targets)
        return "/".join(path) + to

    def _by_id(self, trace: str, id: str) -> Received | None:
        found = [each for each in self.spans if (each.trace, each.id) == (trace, id)]
        return found[0] if found else None


def _read(request: ExportTraceServiceRequest) -> list[Received]:
    return [
        _span(span, scoped.scope.name)
        for resource in request.resource_spans
        for scoped in resource.scope_spans
        for span in scoped.spans
    ]


def _span(span: WireSpan, scope: str) -> Received:
    return Received(
        name=span.name,
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        links=tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
        attributes=_attributes(span.attributes),
        started=span.start_time_unix_nano,
        ended=span.end_time_unix_nano,
        failed=span.status.code == Status.STATUS_CODE_ERROR,
        scope=scope,
    )


def _attributes(pairs: Sequence[KeyValue]) -> dict[str, Any]:
    found = {}
    for pair in pairs:
        kind = pair.value.WhichOneof("value")
        found[pair.key] = None if kind is None else getattr(pair.value, kind)
    return found
