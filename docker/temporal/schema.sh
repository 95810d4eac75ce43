#!/bin/sh
# Every step does nothing where it was done before.
set -eu

for database in temporal temporal_visibility; do
    sql() {
        temporal-sql-tool --plugin postgres12 --ep postgres -p 5432 -u temporal --db "$database" "$@"
    }
    sql create
    sql setup-schema -v 0.0
    sql update-schema -d "/etc/temporal/schema/postgresql/v12/${database#temporal_}/versioned"
done
