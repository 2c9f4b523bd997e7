# Stands in for the official apache/kafka image where no registry can be
# reached: the same environment (KAFKA_… becomes a broker setting, CLUSTER_ID).
ARG BASE
FROM ${BASE}
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends openjdk-17-jre-headless \
 && rm -rf /var/lib/apt/lists/*
COPY jars /opt/kafka/libs
COPY kafka-entrypoint.sh /entrypoint.sh
COPY kafka-topics.sh /opt/kafka/bin/kafka-topics.sh
RUN chmod 755 /opt/kafka/bin/kafka-topics.sh
RUN useradd --system --uid 1000 appuser && mkdir -p /var/lib/kafka/data /etc/kafka && chown -R appuser /var/lib/kafka /etc/kafka
USER appuser
EXPOSE 9092
ENTRYPOINT ["/bin/bash", "/entrypoint.sh"]
