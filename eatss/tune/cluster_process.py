"""A worker of a Dask cluster on this machine, in a process that ends with this one."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from distributed.deploy.subprocess import Subprocess

from eatss.base.guard import guarded
from eatss.base.supervisor import child_environment

LONELY_S = 30
"""Seconds that a worker waits for a scheduler that is gone."""


class WorkerProcess(Subprocess):
    """A nanny with one worker of one thread.

    It is started as a command, so that the program of the user is not imported again, and says
    nothing on the terminal but what is wrong.

    Args:
        scheduler: its address.
        name: of the worker.
        resources: what it has, by name.
        environment: set besides the variables of this process.
    """

    def __init__(
        self,
        scheduler: str,
        *,
        name: str,
        resources: dict[str, int],
        environment: dict[str, str],
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.name = name
        self._scheduler = scheduler
        self._resources = resources
        self._environment = environment

    async def _start(self) -> None:
        options: dict[str, Any] = {
            "name": self.name,
            "nthreads": 1,
            "resources": self._resources,
            "death_timeout": str(LONELY_S),
            "dashboard": False,
        }
        spec = json.dumps({"cls": "distributed.Nanny", "opts": options})
        quiet = {"DASK_LOGGING__DISTRIBUTED": "critical"}
        self.process = await asyncio.create_subprocess_exec(
            *guarded([sys.executable, "-m", "dask", "spec", self._scheduler, "--spec", spec]),
            env=child_environment({**quiet, **self._environment}),
            start_new_session=True,
        )
