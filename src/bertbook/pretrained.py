"""What every BERT of this book can do besides computing: be written, and be read."""

from pathlib import Path

from torch import nn

from bertbook.config import BertConfig

# `checkpoints` reads and writes the files. It needs one library more, and is imported
# only where it is called, so that whoever only computes does without.


class BertPreTrainedModel(nn.Module):
    """A model that can be written to a folder, and read from one.

    >>> hasattr(BertPreTrainedModel, "from_pretrained")
    True
    """

    config: BertConfig

    def save_pretrained(self, folder: str | Path) -> None:
        """Write config.json and model.safetensors into the folder, made if missing.

        Tied tensors are written once. Public code reads both files.
        """
        from bertbook.checkpoints import write_checkpoint

        write_checkpoint(self, folder)

    @classmethod
    def from_pretrained(
        cls, folder: str | Path, *, output_loading_info: bool = False, **arguments
    ):
        """A model of this class, in evaluation mode, with the folder's configuration
        and weights.

        A checkpoint of another task has other heads. Then something is missing or left
        over, which is an error, unless you ask for the report of it.

        Args:
            folder: holds config.json and model.safetensors.
            output_loading_info: return (model, LoadingReport). Pooler and heads may
                then be missing (they keep fresh numbers, from torch's global stream)
                or left over. Embeddings and layers must always be there.
            arguments: for the class, as num_labels=3.

        Raises:
            FileNotFoundError: if the folder or one of its two files is missing.
            ValueError: if a file cannot be read, or tensors are missing, left over, of
                another shape, or tied to one that differs: all are named.
        """
        from bertbook.checkpoints import load_tensors, read_checkpoint

        config, tensors = read_checkpoint(folder)
        model = cls(config, **arguments)
        report = load_tensors(model, tensors, gaps=output_loading_info)
        model.eval()
        return (model, report) if output_loading_info else model
