"""`python -m server.sandbox.isolation`: what isolation is possible here, as JSON."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

from server.sandbox.isolation.probe import probe

if __name__ == "__main__":
    json.dump(asdict(probe()), sys.stdout)
    sys.stdout.write("\n")
