"""The scan: what in a skill's files could harm its user, found before the files are trusted.

`scan` reads bytes and answers with a `Report`; it touches no disk and asks nobody. What follows
from the report (refuse, ask, let an owner override, on record) is the gate's business.
"""

from tacit.changes.scan.scan_report import Finding, Part, Report, ScanVerdict, Severity
from tacit.changes.scan.scanner import scan

__all__ = ["Finding", "Part", "Report", "ScanVerdict", "Severity", "scan"]
