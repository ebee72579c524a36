import torch
import torch.nn.functional as F

INPUTS = {
    "x": "float32[N, H, C]",
    "edges": "int64[2, E] in 0..N",
    "source_weight": "float32[1, H, C]",
    "target_weight": "float32[1, H, C]",
}
DIMS = {"N": [3, 33], "H": [2], "C": [0, 16], "E": [1, 70]}


def edge_softmax(x, edges, source_weight, target_weight):
    """One layer of graph attention: messages along edges, weighed by a softmax over those into a node."""
    source, target = edges[0], edges[1]
    score = (x * source_weight).sum(-1)[source] + (x * target_weight).sum(-1)[target]
    score = F.leaky_relu(score, 0.2)
    places = target[:, None].expand_as(score)
    largest = score.new_full(x.shape[:2], float("-inf"))
    largest = largest.scatter_reduce(0, places, score, "amax", include_self=False)
    weight = (score - largest[target]).exp()
    total = torch.zeros_like(largest).scatter_add(0, places, weight)
    weight = weight / (total[target] + 1e-16)
    message = x[source] * weight[..., None]
    return torch.zeros_like(x).index_add(0, target, message), weight
