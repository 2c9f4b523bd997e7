#!/bin/bash
exec java -cp "/opt/kafka/libs/*" -Dorg.slf4j.simpleLogger.defaultLogLevel=warn org.apache.kafka.tools.TopicCommand "$@"
