"""First-order primitives, one file per mathematical family, each record with every rule in sight."""
