# chrony: in step with the plan's sources; only the declared time hosts answer others.
{%- set platform = salt['saltern.platform']().chrony %}
{%- set time = salt['saltern.view']('foundation:time') %}
include:
  - p1_foundation.names

"time: package":
  pkg.installed:
    - name: {{ platform.package }}
    - refresh: True
    - require:
      - sls: p1_foundation.names

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

"time: service":
  service.running:
    - name: {{ platform.service }}
    - enable: True
    - watch:
      - file: "time: configuration"
