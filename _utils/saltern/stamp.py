"""What a host was last brought to: the digest of its view, so that one short question tells whether
anything is to do."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def of(view: Mapping[str, Any]) -> str:
    """The digest of a view; secrets, and certificates that are renewed, are no part of it.

    The view holds the version of the tree too (``tree``), so a new tree is a new digest.
    """
    public = {key: value for key, value in view.items() if key not in ("secrets", "certificates")}
    text = json.dumps(public, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
