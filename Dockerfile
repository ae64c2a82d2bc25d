# All services of docker-compose.yml. Untested: it was written on a machine without a container engine.
FROM python:3.11-slim-bookworm

# g++ is for Inductor, dot for pictures.
RUN apt-get update && apt-get install --yes --no-install-recommends g++ graphviz && rm -rf /var/lib/apt/lists/*

WORKDIR /opt/aotscope
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY compiler compiler
COPY server server
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
RUN pip install --no-cache-dir --constraint constraints.txt --extra-index-url "$TORCH_INDEX" '.[triton]'

RUN useradd --create-home --uid 1000 aotscope && install --directory --owner aotscope /data \
    && install --directory --owner aotscope --mode 700 /run/aotscope
USER aotscope
ENV AOTSCOPE_DATA=/data
VOLUME /data
CMD ["aotscope", "serve"]
