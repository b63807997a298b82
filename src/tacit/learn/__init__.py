"""From what agents did to proposed changes: Trace and Library in, Change out."""
