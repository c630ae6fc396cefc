"""Inline-cache links to compiled code: machine code that checks and unpacks a call's arguments itself, and runs it."""

import numpy as np

from jitkernels.compiler.dispatch.argument_access import ArgumentAccess
from jitkernels.compiler.dispatch.fp_warnings import LinkedWarningReporter, WarningReporter
from jitkernels.compiler.dispatch.program_entry import EntrySource
from jitkernels.runtime import inline_cache
from jitkernels.runtime.loading import build_ahead, loader


class CompiledLink:
    """An inline-cache link to a compiled entry; owns the code and objects that it uses."""

    def __init__(
        self, entry: EntrySource, access: ArgumentAccess, reporter: WarningReporter | None, *, cached: bool
    ) -> None:
        self.sources = entry.source, entry.segment
        self.access, self.reporter = access, None if reporter is None else LinkedWarningReporter(reporter)
        if cached:
            build_ahead.build(entry.source, entry.segment)
        self.code = loader.load(entry.source, cached=cached)
        self.segment = loader.load(entry.segment, cached=cached)
        objects = [held.ctypes.data if i in access.own else id(held) for i, held in enumerate(access.objects)]
        self.context = np.array([*objects, self.segment.address, entry.max_work_with_gil, 0], np.int64)
        address, context = self.code.address, self.context.ctypes.data
        self.link = inline_cache.link(
            address, context, access.count, access.watches, access.names, reporter=self.reporter
        )
        if self.reporter is not None:
            self.reporter.link = self.link

    @property
    def has_many_bailouts(self) -> bool:
        """Whether Python serves a call since many have bailed out."""
        return bool(self.link[inline_cache.BAILOUTS] >= inline_cache.MANY_BAILOUTS)

    def forget_bailouts(self) -> None:
        """Count no bailouts from now on."""
        self.link[inline_cache.BAILOUTS] = inline_cache.UNCOUNTED

    @property
    def max_workspace_bytes(self) -> int:
        """The largest workspace that a call has used, in bytes."""
        return int(self.context[-1])
