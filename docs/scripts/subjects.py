"""The public names of the large namespaces by subject, in the order in which the reference lists them.

A namespace that is not here has one table. A test asks that each name stands under exactly one subject, so whoever
adds a function says here where a reader will look for it.
"""

SUBJECTS = {
    "functrans": {
        "Compilation": "jit make_jaxpr eval_shape donate progress clear_caches log_compiles ensure_compile_time_eval",
        "Derivatives": """
            grad value_and_grad jacobian jacfwd hessian jvp vjp linearize linear_transpose linear_call fwd_and_bwd
            closure_convert Zero float0
        """,
        "Vectorization": "vmap",
        "Rules of one's own": """
            Function custom_jvp custom_vjp custom_vmap custom_gradient custom_fwd custom_bwd once_differentiable
            BackwardState FunctionError
        """,
        "Memory of reverse mode": "checkpoint checkpoint_name saved_values_hooks no_tracing",
        "Hooks on gradients": """
            cotangent_hook register_hook register_multi_grad_hook register_group_hooks post_accumulate_hook hookable
            RemovableHandle MultiHandle
        """,
        "Together with Numba": "njit numba_call",
        "Together with JAX": "from_jax to_jax",
        "Calls of Python": "pure_callback io_callback effects_barrier",
        "Precision": """
            autocast is_autocast_enabled get_autocast_dtype float16 enable_x64 numpy_dtype_promotion
            numpy_rank_promotion default_matmul_precision
        """,
        "Debugging": """
            debug_nans debug_infs debug_key_reuse disable_jit checking_leaks check_tracer_leaks profile named_scope
            named_call typeof show_config
        """,
        "Arrays and references": """
            Array ShapeDtypeStruct block_until_ready Ref new_ref empty_ref free_ref freeze
        """,
        "Several processes": "shard_map make_mesh P NamedSharding process_count process_index",
        "Devices, as JAX names them": """
            Device default_backend default_device device_count device_get device_put devices local_device_count
            local_devices
        """,
        "Options": "config",
    },
    "functrans.numpy": {
        "Array creation": """
            array asarray asanyarray ascontiguousarray astype copy empty empty_like zeros zeros_like ones ones_like full
            full_like eye identity arange linspace logspace geomspace meshgrid mgrid ogrid tri tril triu vander diag
            diagflat fromfunction from_dlpack frombuffer fromfile fromiter fromstring load
        """,
        "Array manipulation": """
            reshape ravel transpose permute_dims matrix_transpose moveaxis rollaxis swapaxes expand_dims squeeze
            atleast_1d atleast_2d atleast_3d broadcast_to broadcast_arrays broadcast_shapes concatenate concat stack
            vstack hstack dstack column_stack block append split array_split vsplit hsplit dsplit unstack tile repeat
            pad flip fliplr flipud roll rot90 resize insert delete trim_zeros ndim shape size
        """,
        "Indexing": """
            take take_along_axis choose compress extract select where diagonal indices ix_ nonzero flatnonzero argwhere
            c_ r_ s_ index_exp diag_indices diag_indices_from mask_indices tril_indices tril_indices_from triu_indices
            triu_indices_from ravel_multi_index unravel_index place put put_along_axis putmask fill_diagonal newaxis
        """,
        "Linear algebra": """
            dot vdot vecdot inner outer matmul matvec vecmat tensordot einsum einsum_path kron cross trace
        """,
        "Logic": """
            all any allclose isclose array_equal array_equiv equal not_equal greater greater_equal less less_equal
            logical_and logical_not logical_or logical_xor isfinite isinf isnan isneginf isposinf iscomplex
            iscomplexobj isreal isrealobj isscalar iterable
        """,
        "Trigonometric and hyperbolic functions": """
            sin cos tan arcsin arccos arctan arctan2 hypot degrees radians deg2rad rad2deg unwrap sinh cosh tanh arcsinh
            arccosh arctanh sinc
        """,
        "Exponents, logarithms and powers": """
            exp exp2 expm1 log log1p log2 log10 logaddexp logaddexp2 power float_power square sqrt cbrt reciprocal i0
        """,
        "Arithmetic": """
            add subtract multiply divide floor_divide mod fmod divmod modf negative positive absolute fabs sign
            copysign heaviside gcd lcm nextafter spacing frexp ldexp signbit
        """,
        "Complex numbers": "real imag angle conjugate real_if_close",
        "Rounding and limits": "around rint fix floor ceil trunc clip maximum minimum fmax fmin nan_to_num",
        "Sums, products and differences": """
            sum prod cumsum cumprod cumulative_sum cumulative_prod diff ediff1d gradient trapezoid nansum nanprod
            nancumsum nancumprod convolve interp
        """,
        "Bits": """
            bitwise_and bitwise_or bitwise_xor invert left_shift right_shift bitwise_count packbits unpackbits
        """,
        "Sets": """
            unique unique_all unique_counts unique_inverse unique_values intersect1d isin setdiff1d setxor1d union1d
        """,
        "Sorting, searching and counting": """
            sort argsort lexsort sort_complex partition argpartition searchsorted argmax argmin nanargmax nanargmin
            count_nonzero
        """,
        "Statistics": """
            amax amin nanmax nanmin ptp mean average median std var nanmean nanmedian nanstd nanvar percentile quantile
            nanpercentile nanquantile corrcoef cov correlate bincount digitize histogram histogram2d histogramdd
            histogram_bin_edges
        """,
        "Polynomials": "poly polyadd polysub polymul polydiv polyval polyfit polyder polyint roots",
        "Windows": "bartlett blackman hamming hanning kaiser",
        "Functions of functions": """
            vectorize apply_along_axis apply_over_axes piecewise frompyfunc ufunc
        """,
        "Data types": """
            ndarray bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128
            number generic inexact floating complexfloating integer signedinteger unsignedinteger flexible character
            object_ dtype can_cast promote_types result_type common_type min_scalar_type issubdtype isdtype finfo iinfo
        """,
        "Memory, files and text": """
            may_share_memory shares_memory save savez array_repr array_str set_printoptions get_printoptions
            printoptions errstate ComplexWarning
        """,
        "Constants": "pi e euler_gamma inf nan",
    },
    "functrans.numpy.linalg": {
        "Products": "matmul multi_dot matrix_power outer tensordot vecdot cross",
        "Decompositions": "cholesky qr svd svdvals QRResult SVDResult",
        "Eigenvalues": "eig eigh eigvals eigvalsh EigResult EighResult",
        "Norms and other numbers": """
            norm vector_norm matrix_norm cond det slogdet SlogdetResult matrix_rank trace diagonal
        """,
        "Equations and inverses": "solve tensorsolve lstsq inv pinv tensorinv matrix_transpose LinAlgError",
    },
    "functrans.numpy.fft": {
        "Complex transforms": "fft ifft fft2 ifft2 fftn ifftn",
        "Real transforms": "rfft irfft rfft2 irfft2 rfftn irfftn",
        "Hermitian transforms": "hfft ihfft",
        "Helpers": "fftfreq rfftfreq fftshift ifftshift",
    },
    "functrans.lax": {
        "Control flow": "scan fori_loop while_loop cond switch map associative_scan select select_n",
        "Elementwise: arithmetic": """
            add sub mul div rem pow integer_pow neg sign abs max min clamp nextafter reciprocal square sqrt rsqrt cbrt
            floor ceil round RoundingMethod reduce_precision
        """,
        "Elementwise: functions": """
            exp exp2 expm1 log log1p logistic sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh erf erfc
            erf_inv lgamma digamma polygamma zeta betainc igamma igammac igamma_grad_a random_gamma_grad bessel_i0e
            bessel_i1e
        """,
        "Elementwise: complex numbers": "complex conj real imag",
        "Elementwise: comparisons": "eq ne ge gt le lt is_finite",
        "Elementwise: bits": """
            bitwise_and bitwise_not bitwise_or bitwise_xor shift_left shift_right_arithmetic shift_right_logical clz
            population_count mulhi
        """,
        "Creation and conversion": """
            full full_like zeros_like_array empty iota broadcasted_iota convert_element_type bitcast_convert_type dtype
            stop_gradient optimization_barrier
        """,
        "Shapes": """
            reshape broadcast broadcast_in_dim broadcast_shapes broadcast_to_rank broadcast_like collapse concatenate
            expand_dims pad rev split squeeze stack tile transpose unstack shape_as_value
        """,
        "Indexing": """
            slice slice_in_dim index_in_dim index_take dynamic_slice dynamic_slice_in_dim dynamic_index_in_dim
            dynamic_update_slice dynamic_update_slice_in_dim dynamic_update_index_in_dim gather scatter scatter_add
            scatter_sub scatter_mul scatter_max scatter_min scatter_apply GatherDimensionNumbers GatherScatterMode
            ScatterDimensionNumbers
        """,
        "Reductions and running totals": """
            reduce reduce_sum reduce_prod reduce_max reduce_min reduce_and reduce_or reduce_xor argmax argmin cumsum
            cumprod cummax cummin cumlogsumexp reduce_window reduce_window_shape_tuple padtype_to_pads
        """,
        "Sorting": "sort sort_key_val top_k approx_max_k approx_min_k",
        "Products": """
            dot dot_general batch_matmul ragged_dot ragged_dot_general DotDimensionNumbers RaggedDotDimensionNumbers
            Precision
        """,
        "Convolutions": """
            conv conv_general_dilated conv_transpose conv_with_general_padding conv_general_dilated_local
            conv_general_dilated_patches conv_dimension_numbers ConvDimensionNumbers conv_shape_tuple
            conv_general_shape_tuple conv_transpose_shape_tuple conv_general_permutations
        """,
        "Fourier transforms": "fft FftType",
        "Solvers": "custom_root custom_linear_solve",
        "What JAX's compiler is told": """
            platform_dependent composite with_sharding_constraint rng_uniform AccuracyMode Tolerance
        """,
        "Between ranks": """
            psum pmean pmax pmin psum_scatter all_gather all_to_all ppermute pshuffle pswapaxes pbroadcast pvary pcast
            axis_index axis_size
        """,
    },
    "functrans.nn": {
        "Activations": """
            relu relu6 leaky_relu elu celu selu gelu silu mish glu sigmoid hard_sigmoid hard_silu hard_tanh log_sigmoid
            sparse_sigmoid soft_sign softplus sparse_plus squareplus tanh identity log1mexp
        """,
        "Normalization and sums of exponentials": "softmax log_softmax logsumexp logmeanexp standardize one_hot",
        "Attention and products": "dot_product_attention scaled_dot_general scaled_matmul",
    },
    "functrans.scipy.special": {
        "Gamma and beta functions": """
            gamma gammaln loggamma gammasgn rgamma multigammaln poch digamma polygamma gammainc gammaincc gammaincinv
            gammainccinv beta betaln betainc betaincc betaincinv betainccinv factorial comb binom
        """,
        "Error functions and the normal distribution": """
            erf erfc erfcx erfi erfinv erfcinv dawsn wofz fresnel owens_t ndtr log_ndtr ndtri ndtri_exp
        """,
        "Bessel functions": """
            j0 j1 jn y0 y1 yn yv i0 i0e i1 i1e iv ive k0 k0e k1 k1e kn kv kve bessel_jn
        """,
        "Logistic functions and sums of exponentials": """
            expit logit log_expit softmax log_softmax logsumexp
        """,
        "Exponential integrals": "exp1 expi expn shichi sici spence",
        "Information and losses": "entr rel_entr kl_div huber pseudo_huber xlogy xlog1py",
        "Box-Cox transforms and small arguments": "boxcox boxcox1p inv_boxcox inv_boxcox1p cosm1 exp10 exprel",
        "Hypergeometric and elliptic functions": "hyp0f1 hyp1f1 hyp2f1 hyperu ellipe ellipk",
        "Others": "zeta bernoulli sph_harm_y wrightomega",
    },
    "functrans.scipy.linalg": {
        "Equations and inverses": "solve solve_triangular solve_sylvester inv pinv det",
        "Decompositions": """
            cholesky cho_factor cho_solve lu lu_factor lu_solve qr qr_multiply svd svdvals schur rsf2csf hessenberg
            polar
        """,
        "Eigenvalues": "eigh eigvalsh eigh_tridiagonal eigvalsh_tridiagonal",
        "Functions of matrices": "expm expm_frechet sqrtm funm",
        "Special matrices": """
            block_diag circulant companion convolution_matrix dft fiedler fiedler_companion hadamard hankel helmert
            hilbert invhilbert invpascal leslie pascal toeplitz
        """,
    },
    "functrans.scipy.fft": {
        "Cosine and sine transforms": "dct idct dctn idctn dst idst dstn idstn",
        "Fourier transforms": "fft ifft fft2 ifft2 fftn ifftn rfft irfft rfft2 irfft2 rfftn irfftn hfft ihfft",
        "Helpers": "fftfreq rfftfreq fftshift ifftshift next_fast_len",
    },
    "functrans.random": {
        "Keys": "key PRNGKey split fold_in clone key_data wrap_key_data key_impl key_dtype",
        "Uniform bits, integers and numbers": "uniform randint bits bernoulli rademacher",
        "Continuous distributions": """
            normal truncated_normal generalized_normal lognormal cauchy laplace logistic gumbel exponential gamma
            loggamma chisquare beta f t maxwell double_sided_maxwell rayleigh pareto wald weibull_min triangular
        """,
        "Discrete distributions": "binomial geometric poisson categorical multinomial",
        "Vectors and matrices": "multivariate_normal dirichlet ball orthogonal",
        "Samples and permutations": "choice permutation",
    },
    "functrans.ir": {
        "Programs": "trace as_function eval_jaxpr equal verify split Jaxpr Eqn Var Literal Aval Effect Split",
        "Rewriting": "rewrite Rule match Match Op Any Builder",
        "Interpreters": "Interpreter Transformer Primitive primitive",
        "Passes": "simplify inline eliminate_common_subexpressions eliminate_dead_code fold_constants",
        "Costs and pictures": "costs cost_analysis Cost draw to_svg to_dot",
    },
    "functrans.tree_util": {
        "Functions of trees": """
            tree_map tree_map_with_path tree_flatten tree_flatten_with_path tree_unflatten tree_leaves
            tree_leaves_with_path tree_structure tree_reduce tree_reduce_associative tree_all tree_broadcast
            tree_transpose all_leaves is_tree_node Partial
        """,
        "Types of nodes": """
            register_pytree_node register_pytree_node_class register_pytree_with_keys register_pytree_with_keys_class
            register_dataclass register_static default_registry
        """,
        "Structures": """
            PyTreeDef build_tree flatten_one_level flatten_one_level_with_keys tree_flatten_one_level treedef_children
            treedef_is_leaf treedef_tuple
        """,
        "Paths": "keystr DictKey SequenceKey GetAttrKey FlattenedIndexKey KeyEntry KeyPath",
    },
    "functrans.testing": {
        "Checks": """
            check gradcheck gradgradcheck check_custom_rule check_primitive LawViolation LAWS RULE_LAWS
        """,
        "Laws": """
            derivatives_are_linear gradients_keep_types hessian_is_symmetric inputs_stay jit_and_grad_commute
            jit_is_eager jvp_is_slope vjp_is_slope vjp_is_adjoint derivative_is_right vmap_is_loop
            single_precision_agrees
        """,
        "Numbers to try": """
            given_op arrays broadcastable operands pytrees tangents_like in_axes_for programs
            Numbers Interval Distinct Indices Bools PositiveDefinite Triangular Domain Case
        """,
        "Finite differences": "directional_derivative jacobian is_kink is_smooth",
    },
    "functrans.example_libraries.optimizers": {
        "Optimizers": "sgd momentum nesterov adagrad adam adamax rmsprop rmsprop_momentum sm3",
        "Schedules": "constant exponential_decay inverse_time_decay polynomial_decay piecewise_constant make_schedule",
        "Gradients": "l2_norm clip_grads",
        "States": "Optimizer OptimizerState optimizer pack_optimizer_state unpack_optimizer_state JoinPoint",
    },
}
