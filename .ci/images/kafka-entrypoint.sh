#!/bin/bash
# What the official image does with its environment, as far as we use it:
# KAFKA_LOG_DIRS=x is log.dirs=x; "__" is "_" and "___" is "-".
set -euo pipefail
config=/etc/kafka/server.properties
: >"$config"
for name in ${!KAFKA_@}; do
	case $name in KAFKA_HEAP_OPTS | KAFKA_OPTS | KAFKA_JVM_PERFORMANCE_OPTS) continue ;; esac
	key=${name#KAFKA_}
	key=${key//___/-}
	key=${key//__/$'\x01'}
	key=${key//_/.}
	key=${key//$'\x01'/_}
	printf '%s=%s\n' "${key,,}" "${!name}" >>"$config"
done
grep -q '^log.dirs=' "$config" || echo "log.dirs=/var/lib/kafka/data" >>"$config"
java=(java -cp "/opt/kafka/libs/*" -Dorg.slf4j.simpleLogger.defaultLogLevel=warn)
"${java[@]}" -Xmx256m kafka.tools.StorageTool format --ignore-formatted -t "${CLUSTER_ID:-5L6g3nShT-eMCtK--X86sw}" -c "$config"
# shellcheck disable=SC2086
exec "${java[@]}" ${KAFKA_HEAP_OPTS:--Xmx512m} kafka.Kafka "$config"
