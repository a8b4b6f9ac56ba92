"""The cold routes: `/healthz` (this process lives), `/readyz` (send it requests), `/metrics`, and
those of `/admin`."""

from collections.abc import Sequence

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from reflexarc.gateway.metrics import Metrics
from reflexarc.gateway.recorder import Recorder
from reflexarc.gateway.system1 import System1


def cold_routes(
    system1: System1, recorder: Recorder, metrics: Metrics, more: Sequence[Route]
) -> Starlette:
    """System 1 or the recorder being down makes nothing unready: requests go to System 2. It is
    told."""

    async def healthz(_: Request) -> Response:
        return JSONResponse(
            {
                "status": "ok",
                "system1": system1.state,
                "system1_restarts": system1.restarts,
                "recorder": recorder.why_unwell or "ok",
            }
        )

    async def readyz(_: Request) -> Response:
        ready = system1.state in ("up", "restarting")
        body = {
            "status": "ready" if ready else "not ready",
            "system1": system1.state,
            "degraded": system1.state != "up" or bool(system1.unusable) or not recorder.well,
            "unusable": system1.unusable,
        }
        return JSONResponse(body, status_code=200 if ready else 503)

    async def exposition(_: Request) -> Response:
        return Response(metrics.text(), media_type=CONTENT_TYPE_LATEST)

    return Starlette(
        routes=[
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route("/metrics", exposition),
            *more,
        ]
    )
