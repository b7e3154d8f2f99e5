# chrony: in step with the plan's sources; only the declared time hosts answer others.
{%- set platform = salt['saltern.platform']().chrony %}
{%- set time = salt['saltern.view']('foundation:time') %}
include:
  - p1_foundation.names
  - p1_foundation.packages

"time: package":
  pkg.installed:
    - name: {{ platform.package }}
    - refresh: True
    - require:
      - sls: p1_foundation.names
      - sls: p1_foundation.packages

"time: configuration":
  file.managed:
    - name: {{ platform.conf }}
    - source: salt://p1_foundation/files/chrony.conf
    - template: jinja
    - context:
        sources: {{ time.sources | json }}
        serves: {{ time.serves | json }}
        networks: {{ time.networks | json }}
        platform: {{ platform | json }}
    - user: root
    - group: root
    - mode: '0644'
    - require:
      - pkg: "time: package"

# Compared with its file, not watched: a watch forgets when a run is cut between file and daemon.
"time: daemon":
  daemon.current:
    - name: {{ platform.service }}
    - files: [{{ platform.conf }}]
    - require:
      - file: "time: configuration"
