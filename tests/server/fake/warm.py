import os
import time

from compiler.events import Engine


def warm_up(target: str) -> None:
    if os.environ.get("LANG") == "warm-slowly":
        time.sleep(60)


def engine() -> Engine:
    return Engine(aotscope="0", torch="0-fake", python="3", platform="test", cpu="", threads=1)
