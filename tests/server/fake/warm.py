import os
import time

from compiler.events import Engine


def warm_up() -> None:
    time.sleep(float(os.environ.get("FAKE_WARM_SECONDS", "0")))


def engine() -> Engine:
    return Engine(aotscope="0", torch="0-fake", python="3", platform="test", cpu="", threads=1)
