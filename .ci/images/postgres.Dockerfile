# Stands in for the official postgres image where no registry can be reached:
# the same environment (POSTGRES_USER, POSTGRES_PASSWORD, POSTGRES_DB).
ARG BASE
FROM ${BASE}
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql-15 \
 && rm -rf /var/lib/apt/lists/* /var/lib/postgresql/15
RUN install -d -o postgres -g postgres -m 700 /var/lib/postgresql/data
COPY postgres-entrypoint.sh /entrypoint.sh
USER postgres
EXPOSE 5432
STOPSIGNAL SIGINT
ENTRYPOINT ["/bin/bash", "/entrypoint.sh"]
