"""The build: an installed package brings along the run that the dashboard opens on, as transformer/shipped/reverse."""

from setuptools import setup
from setuptools.command.build_py import build_py


class WithRun(build_py):
    """Beside the packages, the shipped run. An editable installation reads it in checkpoints/."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            self.copy_tree("checkpoints/reverse", f"{self.build_lib}/transformer/shipped/reverse")


setup(cmdclass={"build_py": WithRun})
