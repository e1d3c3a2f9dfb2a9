"""When the emulator evaluates alarms: by itself, faster than time, or on request."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Callable
from urllib.parse import parse_qs

from hypercorn.typing import ASGIFramework, ASGIReceiveCallable, ASGISendCallable, Scope

from inference_local.emulator.alarms import EVALUATION_PATH
from inference_local.emulator.patches.alarm_evaluation import evaluate_alarms

#: The shortest time between two evaluations of an alarm.
_TICK_SECONDS = 10.0
#: Called after each evaluation with the time of the alarms' clock, the time of this machine, and the speed.
Follower = Callable[[float, float, float], None]
#: Faster clocks skip ticks, so that evaluations do not keep the emulator from its work.
_SHORTEST_SLEEP_SECONDS = 0.05


class AlarmSchedule:
    """Evaluates the emulator's alarms in its event loop.

    speed: How much faster than time the clock of alarms is. 0 if alarms are evaluated on request only.
    follow: What acts on alarms that stay raised. None for nothing.
    """

    def __init__(self, speed: float, follow: Follower | None = None) -> None:
        self._speed = speed
        self._follow = follow
        self._began = time.time()

    async def run(self) -> None:
        """Evaluate alarms forever, at each full ten seconds of their clock."""
        if not self._speed:
            await asyncio.Event().wait()
        while True:
            now = self._clock()
            tick = math.floor(now / _TICK_SECONDS + 1) * _TICK_SECONDS
            await asyncio.sleep(max((tick - now) / self._speed, _SHORTEST_SLEEP_SECONDS))
            at_seconds, now = self._clock(), time.time()
            evaluate_alarms(at_seconds, now_seconds=now, speed=self._speed)
            if self._follow:
                self._follow(at_seconds, now, self._speed)

    def beside(self, application: ASGIFramework) -> ASGIFramework:
        """Return an application that also answers requests for evaluations.

        application: The emulator.
        """

        async def answer(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
            if scope["type"] != "http" or scope["path"] != EVALUATION_PATH:
                await application(scope, receive, send)
                return
            at_seconds = float(parse_qs(scope["query_string"].decode())["at"][0])
            body = json.dumps(evaluate_alarms(at_seconds)).encode()
            if self._follow:
                self._follow(at_seconds, at_seconds, 1.0)
            headers = [(b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": body, "more_body": False})

        return answer

    def _clock(self) -> float:
        return self._began + (time.time() - self._began) * self._speed
