# Every host finds every other by name: a marked block at the head of /etc/hosts, or the site's DNS. The gate looks the
# names up either way. No host is renamed: the gate of phase 0 refuses one whose name is not the plan's.
include:
  - p0_plan

{%- if salt['saltern.view']('names:provider') == 'hosts' %}
"names: hosts of the plan":
  saltern.hosts_file:
    - name: /etc/hosts
    - require:
      - sls: p0_plan

"names: file":
  file.managed:
    - name: /etc/hosts
    - replace: False
    - user: root
    - group: root
    - mode: '0644'
    - require:
      - saltern: "names: hosts of the plan"
{%- endif %}
