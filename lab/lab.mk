# The lab's part of the Makefile.
LAB ?= lab

.PHONY: cluster lab-down lab-destroy lab-status

cluster: venv ## from nothing to a multi-node job on this machine (LAB=name, TOPOLOGY=file)
	lab/lab cluster --name $(LAB) $(if $(TOPOLOGY),--topology $(TOPOLOGY))

lab-status: venv ## what runs in the lab
	lab/lab status --name $(LAB)

lab-down: venv ## shut the lab's hosts down; their disks stay
	lab/lab down --name $(LAB)

lab-destroy: venv ## forget the lab; the cache stays
	lab/lab destroy --name $(LAB)
